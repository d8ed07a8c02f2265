/* turn: direct */
extern "C" __global__ void __launch_bounds__(128) fl_loop_turn_run(
    const int64_t n,
    float *__restrict__ d0,
    const int64_t s0,
    float *__restrict__ d1,
    const int64_t n0,
    const int64_t n1,
    const int64_t n2,
    const int64_t q1,
    const int64_t h1,
    const int64_t q2,
    const int64_t h2)
{
    const int item = 4 * (int)(blockIdx.x * 128 + threadIdx.x);
    if (item < n) {
        const uint32_t row = (uint32_t)((uint64_t)(uint32_t)item * (uint32_t)q2 >> (int)h2), layer = (uint32_t)((uint64_t)(uint32_t)row * (uint32_t)q1 >> (int)h1);
        const int x = item - (int)row * (int)n2, y = (int)row - (int)layer * (int)n1, z = (int)layer;
        const int i = item;
        const int to_y_m1 = y >= 1 ? -1 * (int)n2 : ((int)n1 - 1) * (int)n2;
        const int to_y_p1 = y < (int)n1 - 1 ? 1 * (int)n2 : (1 - (int)n1) * (int)n2;
        const int to_x_m1 = x >= 1 ? -1 : ((int)n2 - 1) * 1;
        const int to_x_p1 = x < (int)n2 - 4 ? 1 : (1 - (int)n2) * 1;
        float w0_f[4][8][8];
        float wo1[4][1];
        { const fl_several<float, 4> v = *(const fl_several<float, 4> *)(d0 + 0u * (uint32_t)s0 + (uint32_t)(i)); w0_f[0][0][0] = v.v[1]; w0_f[1][0][0] = v.v[2]; w0_f[2][0][0] = v.v[3]; }
        w0_f[3][0][0] = d0[0u * (uint32_t)s0 + (uint32_t)(i + to_x_p1 + 3)];
        { const fl_several<float, 4> v = *(const fl_several<float, 4> *)(d0 + 1u * (uint32_t)s0 + (uint32_t)(i)); w0_f[1][1][1] = v.v[0]; w0_f[2][1][1] = v.v[1]; w0_f[3][1][1] = v.v[2]; }
        w0_f[0][1][1] = d0[1u * (uint32_t)s0 + (uint32_t)(i + to_x_m1)];
        { const fl_several<float, 4> v = *(const fl_several<float, 4> *)(d0 + 2u * (uint32_t)s0 + (uint32_t)(i + to_y_p1)); w0_f[0][2][2] = v.v[0]; w0_f[1][2][2] = v.v[1]; w0_f[2][2][2] = v.v[2]; w0_f[3][2][2] = v.v[3]; }
        { const fl_several<float, 4> v = *(const fl_several<float, 4> *)(d0 + 3u * (uint32_t)s0 + (uint32_t)(i + to_y_m1)); w0_f[0][3][3] = v.v[0]; w0_f[1][3][3] = v.v[1]; w0_f[2][3][3] = v.v[2]; w0_f[3][3][3] = v.v[3]; }
        { const fl_several<float, 4> v = *(const fl_several<float, 4> *)(d0 + 4u * (uint32_t)s0 + (uint32_t)(i + to_y_p1)); w0_f[0][4][4] = v.v[1]; w0_f[1][4][4] = v.v[2]; w0_f[2][4][4] = v.v[3]; }
        w0_f[3][4][4] = d0[4u * (uint32_t)s0 + (uint32_t)(i + to_y_p1 + to_x_p1 + 3)];
        { const fl_several<float, 4> v = *(const fl_several<float, 4> *)(d0 + 5u * (uint32_t)s0 + (uint32_t)(i + to_y_m1)); w0_f[1][5][5] = v.v[0]; w0_f[2][5][5] = v.v[1]; w0_f[3][5][5] = v.v[2]; }
        w0_f[0][5][5] = d0[5u * (uint32_t)s0 + (uint32_t)(i + to_y_m1 + to_x_m1)];
        { const fl_several<float, 4> v = *(const fl_several<float, 4> *)(d0 + 6u * (uint32_t)s0 + (uint32_t)(i + to_y_p1)); w0_f[1][6][6] = v.v[0]; w0_f[2][6][6] = v.v[1]; w0_f[3][6][6] = v.v[2]; }
        w0_f[0][6][6] = d0[6u * (uint32_t)s0 + (uint32_t)(i + to_y_p1 + to_x_m1)];
        { const fl_several<float, 4> v = *(const fl_several<float, 4> *)(d0 + 7u * (uint32_t)s0 + (uint32_t)(i + to_y_m1)); w0_f[0][7][7] = v.v[1]; w0_f[1][7][7] = v.v[2]; w0_f[2][7][7] = v.v[3]; }
        w0_f[3][7][7] = d0[7u * (uint32_t)s0 + (uint32_t)(i + to_y_m1 + to_x_p1 + 3)];
        #pragma unroll 4
        for (int c = 0; c < 4; c++) {
            float o1[1];
            float p0_f[8][8];
            p0_f[0][0] = w0_f[c][0][0];
            p0_f[1][1] = w0_f[c][1][1];
            p0_f[2][2] = w0_f[c][2][2];
            p0_f[3][3] = w0_f[c][3][3];
            p0_f[4][4] = w0_f[c][4][4];
            p0_f[5][5] = w0_f[c][5][5];
            p0_f[6][6] = w0_f[c][6][6];
            p0_f[7][7] = w0_f[c][7][7];
            float t_;
            float t_2_;
            float t_3_;
            float t_4_;
            float t_5_;
            float t_6_;
            float t_7_;
            float t_8_;
            float v_f_0_0 = p0_f[0][0];
            float v_f_1_1 = p0_f[1][1];
            float v_f_2_2 = p0_f[2][2];
            float v_f_3_3 = p0_f[3][3];
            float v_f_4_4 = p0_f[4][4];
            float v_f_5_5 = p0_f[5][5];
            float v_f_6_6 = p0_f[6][6];
            float v_f_7_7 = p0_f[7][7];
            float v_speed_0_0;
            v_speed_0_0 = (v_f_0_0 - v_f_1_1);
            t_ = v_f_1_1;
            t_2_ = v_f_0_0;
            v_f_0_0 = t_;
            v_f_1_1 = t_2_;
            t_3_ = v_f_3_3;
            t_4_ = v_f_2_2;
            v_f_2_2 = t_3_;
            v_f_3_3 = t_4_;
            t_5_ = v_f_5_5;
            t_6_ = v_f_4_4;
            v_f_4_4 = t_5_;
            v_f_5_5 = t_6_;
            t_7_ = v_f_7_7;
            t_8_ = v_f_6_6;
            v_f_6_6 = t_7_;
            v_f_7_7 = t_8_;
            p0_f[0][0] = v_f_0_0;
            p0_f[1][1] = v_f_1_1;
            p0_f[2][2] = v_f_2_2;
            p0_f[3][3] = v_f_3_3;
            p0_f[4][4] = v_f_4_4;
            p0_f[5][5] = v_f_5_5;
            p0_f[6][6] = v_f_6_6;
            p0_f[7][7] = v_f_7_7;
            o1[0] = v_speed_0_0;
            w0_f[c][0][0] = p0_f[0][0];
            w0_f[c][1][1] = p0_f[1][1];
            w0_f[c][2][2] = p0_f[2][2];
            w0_f[c][3][3] = p0_f[3][3];
            w0_f[c][4][4] = p0_f[4][4];
            w0_f[c][5][5] = p0_f[5][5];
            w0_f[c][6][6] = p0_f[6][6];
            w0_f[c][7][7] = p0_f[7][7];
            wo1[c][0] = o1[0];
        }
        int again_i = i;
        FL_AFRESH(again_i);
        int again_to_y_m1 = to_y_m1;
        FL_AFRESH(again_to_y_m1);
        int again_to_y_p1 = to_y_p1;
        FL_AFRESH(again_to_y_p1);
        int again_to_x_m1 = to_x_m1;
        FL_AFRESH(again_to_x_m1);
        int again_to_x_p1 = to_x_p1;
        FL_AFRESH(again_to_x_p1);
        d0[0u * (uint32_t)s0 + (uint32_t)(again_i + 1)] = w0_f[0][0][0];
        d0[0u * (uint32_t)s0 + (uint32_t)(again_i + 2)] = w0_f[1][0][0];
        d0[0u * (uint32_t)s0 + (uint32_t)(again_i + 3)] = w0_f[2][0][0];
        d0[0u * (uint32_t)s0 + (uint32_t)(again_i + again_to_x_p1 + 3)] = w0_f[3][0][0];
        d0[1u * (uint32_t)s0 + (uint32_t)(again_i + again_to_x_m1)] = w0_f[0][1][1];
        d0[1u * (uint32_t)s0 + (uint32_t)(again_i)] = w0_f[1][1][1];
        d0[1u * (uint32_t)s0 + (uint32_t)(again_i + 1)] = w0_f[2][1][1];
        d0[1u * (uint32_t)s0 + (uint32_t)(again_i + 2)] = w0_f[3][1][1];
        { fl_several<float, 4> v; v.v[0] = w0_f[0][2][2]; v.v[1] = w0_f[1][2][2]; v.v[2] = w0_f[2][2][2]; v.v[3] = w0_f[3][2][2]; *(fl_several<float, 4> *)(d0 + 2u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_p1)) = v; }
        { fl_several<float, 4> v; v.v[0] = w0_f[0][3][3]; v.v[1] = w0_f[1][3][3]; v.v[2] = w0_f[2][3][3]; v.v[3] = w0_f[3][3][3]; *(fl_several<float, 4> *)(d0 + 3u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_m1)) = v; }
        d0[4u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_p1 + 1)] = w0_f[0][4][4];
        d0[4u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_p1 + 2)] = w0_f[1][4][4];
        d0[4u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_p1 + 3)] = w0_f[2][4][4];
        d0[4u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_p1 + again_to_x_p1 + 3)] = w0_f[3][4][4];
        d0[5u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_m1 + again_to_x_m1)] = w0_f[0][5][5];
        d0[5u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_m1)] = w0_f[1][5][5];
        d0[5u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_m1 + 1)] = w0_f[2][5][5];
        d0[5u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_m1 + 2)] = w0_f[3][5][5];
        d0[6u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_p1 + again_to_x_m1)] = w0_f[0][6][6];
        d0[6u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_p1)] = w0_f[1][6][6];
        d0[6u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_p1 + 1)] = w0_f[2][6][6];
        d0[6u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_p1 + 2)] = w0_f[3][6][6];
        d0[7u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_m1 + 1)] = w0_f[0][7][7];
        d0[7u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_m1 + 2)] = w0_f[1][7][7];
        d0[7u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_m1 + 3)] = w0_f[2][7][7];
        d0[7u * (uint32_t)s0 + (uint32_t)(again_i + again_to_y_m1 + again_to_x_p1 + 3)] = w0_f[3][7][7];
        { fl_several<float, 4> v; v.v[0] = wo1[0][0]; v.v[1] = wo1[1][0]; v.v[2] = wo1[2][0]; v.v[3] = wo1[3][0]; *(fl_several<float, 4> *)(d1 + ((uint32_t)(again_i))) = v; }
    }
}

